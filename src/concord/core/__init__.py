"""What everything else stands on: errors, settings, contracts and reports."""
