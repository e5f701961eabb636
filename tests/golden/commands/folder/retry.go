package retry

import "time"

// Backoff returns how long to wait before an attempt: twice as long each time, a minute at most.
func Backoff(attempt int) time.Duration {
	wait := time.Duration(1<<attempt) * time.Second
	if wait > time.Minute {
		return time.Minute
	}
	return wait
}
