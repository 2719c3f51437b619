"""The rules of the rewriter. Each rule turns a part of the syntax into text edits that keep every line in place."""
