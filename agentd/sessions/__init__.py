"""Sessions: one owner of state each, one journal each."""
