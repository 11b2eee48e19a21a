"""What each lane reads around a place of its own: footprints of image filters, and their like."""
