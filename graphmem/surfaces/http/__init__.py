"""The verbs over HTTP, for programs and pages of this machine alone."""
