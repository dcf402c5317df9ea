"""Calls that copy memory."""
