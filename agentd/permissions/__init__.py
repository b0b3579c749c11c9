"""What may run, what must be asked, what is refused."""
