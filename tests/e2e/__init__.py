"""The whole product, as its users have it."""
