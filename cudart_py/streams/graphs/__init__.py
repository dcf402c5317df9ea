"""Graphs as far as they need only streams: captures, nodes, conditional nodes and executable graphs."""
