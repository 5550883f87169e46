"""What is right, as code: for each exercise one function that runs the answer and names the property that fails."""
