"""What a default is judged by."""
