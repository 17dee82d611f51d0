"""Sending one message to one notifier; only the delivery process loads what is here."""
