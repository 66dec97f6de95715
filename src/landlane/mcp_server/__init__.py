"""The MCP server: the same operations as tools for a model."""
