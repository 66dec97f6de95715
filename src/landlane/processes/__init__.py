"""The only place that starts programs other than git."""
