"""The panel: pages in which a person looks at a memory and keeps it in order, served by the server of its verbs."""
