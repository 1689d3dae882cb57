"""Drawn pages whose text is known, and the small models that read them, for the tests and the demo."""
