"""What bench/report is made of: reading results, comparing them, writing the comparison as Markdown or HTML."""
