"""Sources as Spark reads them: Python data sources that every Spark job can use."""
