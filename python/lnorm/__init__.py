"""Layer normalisation and its family: accurate, the same bits everywhere."""
