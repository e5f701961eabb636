"""What holds whatever goes wrong, each promise with a campaign that tries to break it."""
