"""Models to talk to: a scripted one, any OpenAI-compatible server, and recorded replies played back."""
