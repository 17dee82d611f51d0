"""The process that sends notifications: exec'd when something is due, gone when nothing is."""
