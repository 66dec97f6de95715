"""What things are: frozen values and the pure rules that judge them."""
