"""What operations need from outside, written as Protocols."""
