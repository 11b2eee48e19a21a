"""The door between the planes: messages, their dispatch, and the two ways in. See README.md."""
