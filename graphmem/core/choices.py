"""The words of which an argument takes one, or some: what is checked, offered by surfaces and told in schemas."""

from graphmem.config import SEARCH_MODES

PROCEDURES = ("skill", "agent", "command")
NOTE_KINDS = ("fact", "lesson", "rule", "preference", "decision", "pitfall", "checkpoint", *PROCEDURES)
NOTE_STATUSES = ("live", "proposed", "archived", "superseded", "forgotten")
# Of sources, the most trusted one first.
SOURCE_CLASSES = ("user", "agent", "tool", "import")
RECALL_KINDS = ("note", "relation", "part", "document", "block", "entity", "scene")
RECALL_MODES = (*SEARCH_MODES, "scene")
SCENE_ORDERS = ("refs", "strength", "recent", "key")
SCENE_ORIGINS = ("declared", "emergent")
PICTURE_FORMS = ("mermaid", "dot", "json", "graphml", "svg", "html")
MODALITIES = ("text", "image", "video", "audio")
INCIDENT_STATES = ("open", "resolved")
CHECKPOINT_CAUSES = ("manual", "idle", "compaction")
