"""graphmem: a scene-graph memory for AI agents, in one SQLite file or on a PostgreSQL server."""

from graphmem.late import late_names

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all that a hook needs
if TYPE_CHECKING:
    from graphmem.arbiters import command_arbiter as command_arbiter
    from graphmem.arbiters import endpoint_arbiter as endpoint_arbiter
    from graphmem.async_memory import AsyncMemory as AsyncMemory
    from graphmem.async_memory import AsyncTurn as AsyncTurn
    from graphmem.compose.turn import Turn as Turn
    from graphmem.config import Config as Config
    from graphmem.config import Ranking as Ranking
    from graphmem.core.events import Event as Event
    from graphmem.core.keys import entity_key as entity_key
    from graphmem.core.keys import normalize_key as normalize_key
    from graphmem.core.model import Arbiter as Arbiter
    from graphmem.core.model import Block as Block
    from graphmem.core.model import Brief as Brief
    from graphmem.core.model import CheckpointReport as CheckpointReport
    from graphmem.core.model import CommitReport as CommitReport
    from graphmem.core.model import ConsolidationReport as ConsolidationReport
    from graphmem.core.model import DedupeReport as DedupeReport
    from graphmem.core.model import Document as Document
    from graphmem.core.model import EditReport as EditReport
    from graphmem.core.model import EntityPair as EntityPair
    from graphmem.core.model import EntityReview as EntityReview
    from graphmem.core.model import FactPath as FactPath
    from graphmem.core.model import ForgottenReport as ForgottenReport
    from graphmem.core.model import HarvestReport as HarvestReport
    from graphmem.core.model import Hit as Hit
    from graphmem.core.model import Incident as Incident
    from graphmem.core.model import IncidentReport as IncidentReport
    from graphmem.core.model import Job as Job
    from graphmem.core.model import MirrorReport as MirrorReport
    from graphmem.core.model import Neighbourhood as Neighbourhood
    from graphmem.core.model import Note as Note
    from graphmem.core.model import Overview as Overview
    from graphmem.core.model import Part as Part
    from graphmem.core.model import PastHit as PastHit
    from graphmem.core.model import PurgeReport as PurgeReport
    from graphmem.core.model import Recollection as Recollection
    from graphmem.core.model import RememberReport as RememberReport
    from graphmem.core.model import ReplayReport as ReplayReport
    from graphmem.core.model import Scene as Scene
    from graphmem.core.model import SceneMatch as SceneMatch
    from graphmem.core.model import SecretReport as SecretReport
    from graphmem.core.model import StoredPart as StoredPart
    from graphmem.core.model import StoredSecret as StoredSecret
    from graphmem.core.model import Triple as Triple
    from graphmem.core.model import UndoReport as UndoReport
    from graphmem.core.model import Visit as Visit
    from graphmem.core.model import Writer as Writer
    from graphmem.core.model import WriterTask as WriterTask
    from graphmem.core.policies import ChannelPolicy as ChannelPolicy
    from graphmem.core.situations import Feature as Feature
    from graphmem.core.situations import Situation as Situation
    from graphmem.core.situations import similarity as similarity
    from graphmem.errors import BudgetSpent as BudgetSpent
    from graphmem.errors import Conflict as Conflict
    from graphmem.errors import GraphmemError as GraphmemError
    from graphmem.errors import InvalidInput as InvalidInput
    from graphmem.errors import NotFound as NotFound
    from graphmem.errors import SchemaTooNew as SchemaTooNew
    from graphmem.errors import SecretRefused as SecretRefused
    from graphmem.errors import StoreBusy as StoreBusy
    from graphmem.errors import StoreCorrupt as StoreCorrupt
    from graphmem.errors import StoreFailed as StoreFailed
    from graphmem.errors import WriterFailed as WriterFailed
    from graphmem.errors import WriterUnavailable as WriterUnavailable
    from graphmem.memory import Memory as Memory
    from graphmem.writers import TokenBudget as TokenBudget
    from graphmem.writers import command_writer as command_writer
    from graphmem.writers import endpoint_writer as endpoint_writer


__version__ = "0.1.0"

# Loaded when first asked for: `graphmem --help` needs none of them.
_HOMES = {
    "Arbiter": "graphmem.core.model",
    "AsyncMemory": "graphmem.async_memory",
    "AsyncTurn": "graphmem.async_memory",
    "Block": "graphmem.core.model",
    "Brief": "graphmem.core.model",
    "BudgetSpent": "graphmem.errors",
    "ChannelPolicy": "graphmem.core.policies",
    "CheckpointReport": "graphmem.core.model",
    "CommitReport": "graphmem.core.model",
    "Config": "graphmem.config",
    "Conflict": "graphmem.errors",
    "ConsolidationReport": "graphmem.core.model",
    "DedupeReport": "graphmem.core.model",
    "Document": "graphmem.core.model",
    "EditReport": "graphmem.core.model",
    "EntityPair": "graphmem.core.model",
    "EntityReview": "graphmem.core.model",
    "Event": "graphmem.core.events",
    "FactPath": "graphmem.core.model",
    "ForgottenReport": "graphmem.core.model",
    "Feature": "graphmem.core.situations",
    "GraphmemError": "graphmem.errors",
    "HarvestReport": "graphmem.core.model",
    "Hit": "graphmem.core.model",
    "Incident": "graphmem.core.model",
    "IncidentReport": "graphmem.core.model",
    "InvalidInput": "graphmem.errors",
    "Job": "graphmem.core.model",
    "Memory": "graphmem.memory",
    "MirrorReport": "graphmem.core.model",
    "Neighbourhood": "graphmem.core.model",
    "NotFound": "graphmem.errors",
    "Note": "graphmem.core.model",
    "Overview": "graphmem.core.model",
    "Part": "graphmem.core.model",
    "PastHit": "graphmem.core.model",
    "PurgeReport": "graphmem.core.model",
    "Ranking": "graphmem.config",
    "Recollection": "graphmem.core.model",
    "RememberReport": "graphmem.core.model",
    "ReplayReport": "graphmem.core.model",
    "Scene": "graphmem.core.model",
    "SceneMatch": "graphmem.core.model",
    "SchemaTooNew": "graphmem.errors",
    "Situation": "graphmem.core.situations",
    "SecretReport": "graphmem.core.model",
    "SecretRefused": "graphmem.errors",
    "StoreBusy": "graphmem.errors",
    "StoreCorrupt": "graphmem.errors",
    "StoreFailed": "graphmem.errors",
    "StoredPart": "graphmem.core.model",
    "StoredSecret": "graphmem.core.model",
    "TokenBudget": "graphmem.writers",
    "Triple": "graphmem.core.model",
    "Turn": "graphmem.compose.turn",
    "UndoReport": "graphmem.core.model",
    "Visit": "graphmem.core.model",
    "Writer": "graphmem.core.model",
    "WriterFailed": "graphmem.errors",
    "WriterUnavailable": "graphmem.errors",
    "WriterTask": "graphmem.core.model",
    "command_arbiter": "graphmem.arbiters",
    "command_writer": "graphmem.writers",
    "endpoint_arbiter": "graphmem.arbiters",
    "endpoint_writer": "graphmem.writers",
    "entity_key": "graphmem.core.keys",
    "normalize_key": "graphmem.core.keys",
    "similarity": "graphmem.core.situations",
}

__all__ = list(_HOMES)

__getattr__, __dir__ = late_names(globals(), _HOMES)
