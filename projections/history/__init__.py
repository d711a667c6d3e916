"""What all runs tell together: how each went, what each target used, what each case did."""
