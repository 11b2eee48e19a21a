"""From words to a Module: the reader and its decoders."""
