"""The parts of a model, each described once: vision tower, embedding, decoder, heads. A dialect writes them down."""
