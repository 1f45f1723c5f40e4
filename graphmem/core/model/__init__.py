"""The values that come in and go out: triples, visits, what is recalled, reports. All frozen, all plain Python.

Each is found here and lies in the module of its subject, which is loaded when one of them is first asked for: a frozen
class takes 0.5 ms to make, and a turn needs a tenth of them.
"""

from typing import TYPE_CHECKING

from graphmem.late import late_names

if TYPE_CHECKING:
    from graphmem.core.model.consolidated import Conclusion as Conclusion
    from graphmem.core.model.consolidated import ConsolidationReport as ConsolidationReport
    from graphmem.core.model.content import ArchiveReport as ArchiveReport
    from graphmem.core.model.content import Block as Block
    from graphmem.core.model.content import Document as Document
    from graphmem.core.model.edits import DropReport as DropReport
    from graphmem.core.model.edits import EditReport as EditReport
    from graphmem.core.model.edits import PurgeReport as PurgeReport
    from graphmem.core.model.edits import RenameReport as RenameReport
    from graphmem.core.model.edits import ResetReport as ResetReport
    from graphmem.core.model.edits import TagReport as TagReport
    from graphmem.core.model.edits import UntagReport as UntagReport
    from graphmem.core.model.entities import ApartReport as ApartReport
    from graphmem.core.model.entities import Arbiter as Arbiter
    from graphmem.core.model.entities import EntityMergeReport as EntityMergeReport
    from graphmem.core.model.entities import EntityPair as EntityPair
    from graphmem.core.model.entities import EntityReview as EntityReview
    from graphmem.core.model.entities import FoldedFact as FoldedFact
    from graphmem.core.model.entities import KeptApart as KeptApart
    from graphmem.core.model.entities import Settlement as Settlement
    from graphmem.core.model.entities import SettleReport as SettleReport
    from graphmem.core.model.entities import SimilarEntity as SimilarEntity
    from graphmem.core.model.exchanged import ImportCount as ImportCount
    from graphmem.core.model.exchanged import ImportMerge as ImportMerge
    from graphmem.core.model.exchanged import ImportRefusal as ImportRefusal
    from graphmem.core.model.exchanged import ImportReport as ImportReport
    from graphmem.core.model.exported import ExportReport as ExportReport
    from graphmem.core.model.facts import CommitReport as CommitReport
    from graphmem.core.model.facts import Refusal as Refusal
    from graphmem.core.model.facts import Triple as Triple
    from graphmem.core.model.facts import triple_problem as triple_problem
    from graphmem.core.model.files import BackupReport as BackupReport
    from graphmem.core.model.files import CheckReport as CheckReport
    from graphmem.core.model.files import CopyReport as CopyReport
    from graphmem.core.model.files import FileState as FileState
    from graphmem.core.model.files import ForgottenReport as ForgottenReport
    from graphmem.core.model.files import RepairReport as RepairReport
    from graphmem.core.model.files import RestoreReport as RestoreReport
    from graphmem.core.model.files import SecretReport as SecretReport
    from graphmem.core.model.files import StoredSecret as StoredSecret
    from graphmem.core.model.files import Trace as Trace
    from graphmem.core.model.files import TreeState as TreeState
    from graphmem.core.model.files import WalState as WalState
    from graphmem.core.model.found import Brief as Brief
    from graphmem.core.model.found import Hit as Hit
    from graphmem.core.model.found import Reason as Reason
    from graphmem.core.model.graph import FactPath as FactPath
    from graphmem.core.model.graph import Neighbour as Neighbour
    from graphmem.core.model.graph import Neighbourhood as Neighbourhood
    from graphmem.core.model.incidents import Incident as Incident
    from graphmem.core.model.incidents import IncidentReport as IncidentReport
    from graphmem.core.model.ledger import Ledger as Ledger
    from graphmem.core.model.notes import ForgetReport as ForgetReport
    from graphmem.core.model.notes import Inspection as Inspection
    from graphmem.core.model.notes import Note as Note
    from graphmem.core.model.notes import NoteCount as NoteCount
    from graphmem.core.model.notes import NoteDetail as NoteDetail
    from graphmem.core.model.notes import NoteEditReport as NoteEditReport
    from graphmem.core.model.notes import Proposed as Proposed
    from graphmem.core.model.notes import Provenance as Provenance
    from graphmem.core.model.notes import RememberReport as RememberReport
    from graphmem.core.model.notes import Route as Route
    from graphmem.core.model.planted import TreeChange as TreeChange
    from graphmem.core.model.planted import TreeConflict as TreeConflict
    from graphmem.core.model.planted import TreeReport as TreeReport
    from graphmem.core.model.recalled import RecalledBlock as RecalledBlock
    from graphmem.core.model.recalled import RecalledDocument as RecalledDocument
    from graphmem.core.model.recalled import RecalledEntity as RecalledEntity
    from graphmem.core.model.recalled import RecalledNote as RecalledNote
    from graphmem.core.model.recalled import RecalledRelation as RecalledRelation
    from graphmem.core.model.recalled import Recollection as Recollection
    from graphmem.core.model.records import DeletedParts as DeletedParts
    from graphmem.core.model.records import HarvestReport as HarvestReport
    from graphmem.core.model.records import MirrorReport as MirrorReport
    from graphmem.core.model.records import Part as Part
    from graphmem.core.model.records import PastHit as PastHit
    from graphmem.core.model.records import SessionInfo as SessionInfo
    from graphmem.core.model.records import StoredPart as StoredPart
    from graphmem.core.model.replayed import Learnt as Learnt
    from graphmem.core.model.replayed import ReplayReport as ReplayReport
    from graphmem.core.model.scenes import Bucket as Bucket
    from graphmem.core.model.scenes import Scene as Scene
    from graphmem.core.model.scenes import SceneDetail as SceneDetail
    from graphmem.core.model.scenes import SceneFeature as SceneFeature
    from graphmem.core.model.scenes import SceneMatch as SceneMatch
    from graphmem.core.model.scenes import SharedFeature as SharedFeature
    from graphmem.core.model.scenes import StrengthDay as StrengthDay
    from graphmem.core.model.scopes import Project as Project
    from graphmem.core.model.scopes import ScopeInfo as ScopeInfo
    from graphmem.core.model.upkeep import DedupeReport as DedupeReport
    from graphmem.core.model.upkeep import GrowthDay as GrowthDay
    from graphmem.core.model.upkeep import Operation as Operation
    from graphmem.core.model.upkeep import Overview as Overview
    from graphmem.core.model.upkeep import SceneHealth as SceneHealth
    from graphmem.core.model.upkeep import TwinGroup as TwinGroup
    from graphmem.core.model.upkeep import TwinScene as TwinScene
    from graphmem.core.model.upkeep import UndoReport as UndoReport
    from graphmem.core.model.upkeep import UpkeepReport as UpkeepReport
    from graphmem.core.model.upkeep import UpkeepStep as UpkeepStep
    from graphmem.core.model.visits import DeclaredScene as DeclaredScene
    from graphmem.core.model.visits import Visit as Visit
    from graphmem.core.model.writing import CheckpointReport as CheckpointReport
    from graphmem.core.model.writing import Job as Job
    from graphmem.core.model.writing import Writer as Writer
    from graphmem.core.model.writing import WriterTask as WriterTask

_SUBJECTS = {
    "ApartReport": "entities",
    "Arbiter": "entities",
    "ArchiveReport": "content",
    "BackupReport": "files",
    "Block": "content",
    "Brief": "found",
    "Bucket": "scenes",
    "CheckReport": "files",
    "CopyReport": "files",
    "CheckpointReport": "writing",
    "CommitReport": "facts",
    "Conclusion": "consolidated",
    "ConsolidationReport": "consolidated",
    "DeclaredScene": "visits",
    "DedupeReport": "upkeep",
    "DeletedParts": "records",
    "Document": "content",
    "DropReport": "edits",
    "EditReport": "edits",
    "EntityMergeReport": "entities",
    "EntityPair": "entities",
    "EntityReview": "entities",
    "ExportReport": "exported",
    "FactPath": "graph",
    "FoldedFact": "entities",
    "ForgetReport": "notes",
    "FileState": "files",
    "ForgottenReport": "files",
    "GrowthDay": "upkeep",
    "HarvestReport": "records",
    "Hit": "found",
    "ImportCount": "exchanged",
    "ImportMerge": "exchanged",
    "ImportRefusal": "exchanged",
    "ImportReport": "exchanged",
    "Inspection": "notes",
    "Incident": "incidents",
    "IncidentReport": "incidents",
    "Job": "writing",
    "KeptApart": "entities",
    "Learnt": "replayed",
    "Ledger": "ledger",
    "MirrorReport": "records",
    "Neighbour": "graph",
    "Neighbourhood": "graph",
    "Note": "notes",
    "NoteCount": "notes",
    "NoteDetail": "notes",
    "NoteEditReport": "notes",
    "Operation": "upkeep",
    "Overview": "upkeep",
    "Part": "records",
    "PastHit": "records",
    "Proposed": "notes",
    "Provenance": "notes",
    "Project": "scopes",
    "PurgeReport": "edits",
    "Reason": "found",
    "RecalledBlock": "recalled",
    "RecalledDocument": "recalled",
    "RecalledEntity": "recalled",
    "RecalledNote": "recalled",
    "RecalledRelation": "recalled",
    "Recollection": "recalled",
    "Refusal": "facts",
    "RememberReport": "notes",
    "RenameReport": "edits",
    "RepairReport": "files",
    "ReplayReport": "replayed",
    "ResetReport": "edits",
    "RestoreReport": "files",
    "Route": "notes",
    "SceneDetail": "scenes",
    "SceneFeature": "scenes",
    "SecretReport": "files",
    "StoredPart": "records",
    "StoredSecret": "files",
    "Scene": "scenes",
    "SceneHealth": "upkeep",
    "SceneMatch": "scenes",
    "ScopeInfo": "scopes",
    "SessionInfo": "records",
    "SettleReport": "entities",
    "Settlement": "entities",
    "SharedFeature": "scenes",
    "SimilarEntity": "entities",
    "StrengthDay": "scenes",
    "TagReport": "edits",
    "Trace": "files",
    "TreeChange": "planted",
    "TreeConflict": "planted",
    "TreeReport": "planted",
    "TreeState": "files",
    "Triple": "facts",
    "TwinGroup": "upkeep",
    "TwinScene": "upkeep",
    "UndoReport": "upkeep",
    "UntagReport": "edits",
    "UpkeepReport": "upkeep",
    "UpkeepStep": "upkeep",
    "Visit": "visits",
    "WalState": "files",
    "Writer": "writing",
    "WriterTask": "writing",
    "triple_problem": "facts",
}

__all__ = list(_SUBJECTS)

__getattr__, __dir__ = late_names(globals(), {name: f"{__name__}.{subject}" for name, subject in _SUBJECTS.items()})
