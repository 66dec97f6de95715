"""What keeps running: workers, the landing queue, upkeep, the monitor and the resident."""
