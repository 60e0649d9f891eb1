"""What people do, one module for each action: values in, values out; the command line and the page only show them."""
