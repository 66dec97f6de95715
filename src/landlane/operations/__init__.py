"""Everything the product can do, one module per noun; a change and its journal entry are one transaction."""
