"""The pages of the web app: each wires inputs, simulator and views; computes nothing."""
