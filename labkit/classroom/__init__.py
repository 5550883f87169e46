"""What a class needs around the agent: a stepper, figures, exercises, and notebooks that stay true."""
