"""Two more published designs of a todo list, each a tracker for the same loop."""
