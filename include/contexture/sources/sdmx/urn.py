"""URNs of structures: reading them, and writing those that a message leaves out.

The form is `urn:sdmx:org.sdmx.infomodel.{package}.{class}={agency}:{id}({version})`, for an item followed by `.{item}`.

Classes and packages are those of the SDMX Information Model (SDMX 2.1 and 3.0, section 2; URNs: section 5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


def _by_member(groups: Mapping[str, str]) -> Mapping[str, str]:
    """Returns for each word of the values its key."""
    return MappingProxyType({member: group for group, members in groups.items() for member in members.split()})


PACKAGES = _by_member(
    {
        "base": "AgencyScheme DataConsumerScheme DataProviderScheme MetadataProviderScheme OrganisationScheme "
        "OrganisationUnitScheme",
        "categoryscheme": "Categorisation CategoryScheme ReportingTaxonomy",
        "codelist": "Codelist GeoGridCodelist GeographicCodelist HierarchicalCodelist Hierarchy "
        "HierarchyAssociation ValueList",
        "conceptscheme": "ConceptScheme",
        "datastructure": "DataStructure Dataflow",
        "mapping": "StructureSet",
        "metadatastructure": "MetadataStructure Metadataflow",
        "process": "Process",
        "registry": "AttachmentConstraint AvailabilityConstraint ContentConstraint DataConstraint "
        "MetadataConstraint MetadataProvisionAgreement ProvisionAgreement Registration",
        "structuremapping": "CategorySchemeMap ConceptSchemeMap OrganisationSchemeMap ReportingTaxonomyMap "
        "RepresentationMap StructureMap",
        "transformation": "CustomTypeScheme NamePersonalisationScheme RulesetScheme TransformationScheme "
        "UserDefinedOperatorScheme VtlMappingScheme",
    }
)
"""The package of each kind of maintainable artefact."""

CLASSES: Mapping[str, str] = MappingProxyType({"GeographicCodelist": "Codelist", "GeoGridCodelist": "Codelist"})
"""The class in the URN, where it isn't the kind."""

SINGLE_SCHEMES: Mapping[str, str] = MappingProxyType(
    {
        "AgencyScheme": "AGENCIES",
        "DataConsumerScheme": "DATA_CONSUMERS",
        "DataProviderScheme": "DATA_PROVIDERS",
        "MetadataProviderScheme": "METADATA_PROVIDERS",
    }
)
"""Schemes of which an agency has one: with this id, and never another version than 1.0."""

REGISTRATION = "Registration"
"""A data registration: an id that the registry gave, without agency and version of its own."""

_ELEMENTS = {
    "CodeList": "Codelist",
    "KeyFamily": "DataStructure",
    "MetadataStructureDefinition": "MetadataStructure",
}
_SPELLINGS = {kind.lower(): kind for kind in PACKAGES}
_ENDINGS = (("ies", "y"), ("es", ""), ("s", ""))

HOLDERS = _by_member(
    {
        "AgencyScheme": "Agency",
        "CategoryScheme": "Category",
        "Codelist": "Code GeoFeatureSetCode GeoGridCode GeographicCode",
        "ConceptScheme": "Concept",
        "CustomTypeScheme": "CustomType",
        "DataConsumerScheme": "DataConsumer",
        "DataProviderScheme": "DataProvider",
        "DataStructure": "AttributeDescriptor AttributeList DataAttribute Dimension DimensionDescriptor "
        "DimensionList GroupDimensionDescriptor Measure MeasureDescriptor MeasureDimension MeasureList "
        "MetadataAttributeUsage PrimaryMeasure ReportingYearStartDay TimeDimension",
        "HierarchicalCodelist": "Hierarchy",
        "Hierarchy": "HierarchicalCode Level",
        "MetadataProviderScheme": "MetadataProvider",
        "MetadataStructure": "ConstraintTarget DataSetTarget IdentifiableObjectTarget KeyDescriptorTarget "
        "MetadataAttribute MetadataAttributeDescriptor MetadataTarget ReportPeriodTarget ReportStructure",
        "NamePersonalisationScheme": "NamePersonalisation",
        "OrganisationUnitScheme": "OrganisationUnit",
        "Process": "ProcessStep Transition",
        "ReportingTaxonomy": "ReportingCategory",
        "RulesetScheme": "Ruleset",
        "StructureSet": "CategoryMap CategorySchemeMap CodeMap CodelistMap ComponentMap ConceptMap "
        "ConceptSchemeMap HybridCodeMap HybridCodelistMap OrganisationMap OrganisationSchemeMap "
        "ReportingCategoryMap ReportingTaxonomyMap StructureMap",
        "TransformationScheme": "Transformation",
        "UserDefinedOperatorScheme": "UserDefinedOperator",
        "VtlMappingScheme": "VtlCodelistMapping VtlConceptMapping VtlDataflowMapping VtlMapping",
    }
)
"""The kind of the artefact that holds items of a class; hierarchies and maps are items in SDMX 2.1 alone."""


def kind_of_element(name: str) -> str | None:
    """Returns the kind of an XML element or of a member of Fusion-JSON; None where the model has none of that name.

    >>> kind_of_element("KeyFamily")
    'DataStructure'
    """
    kind = _ELEMENTS.get(name, name)
    return kind if kind in PACKAGES else None


def kind_of_container(name: str) -> str | None:
    """Returns the kind of what an SDMX-JSON array holds, by the array's name.

    >>> kind_of_container("dataConstraints")
    'DataConstraint'
    """
    lowered = name.lower()
    for ending, singular in _ENDINGS:
        if lowered.endswith(ending):
            kind = _SPELLINGS.get(lowered.removesuffix(ending) + singular)
            if kind:
                return kind
    return None


DEFAULT_VERSION = "1.0"
_PREFIX = "urn:sdmx:org.sdmx.infomodel."
# The id of an item may hold brackets, so the version ends at the first bracket that closes.
_URN = re.compile(
    r"urn:sdmx:(?P<model>[A-Za-z.]+?)\.(?P<package>[a-z]+)\.(?P<class_name>[A-Za-z]+)="
    r"(?P<agency>[^:()\s]+):(?P<id>[^()\s]+)\((?P<version>[^()\s]*)\)(?:\.(?P<item>\S+))?"
)


@dataclass(frozen=True, slots=True)
class Urn:
    """The parts of a URN.

    Attributes:
        package: of the information model, such as `codelist`.
        class_name: such as `Codelist`, or of an item, `Code`.
        agency: with dots between an agency and its parts.
        id: of the maintainable artefact.
        version: as written; may be `1.0+`, `~` or `*` where the URN represents several.
        item: id of an item with its parents' ids before it, None for the artefact itself.
        model: what the package is a part of; registries have kinds of their own in other models.
    """

    package: str
    class_name: str
    agency: str
    id: str
    version: str = DEFAULT_VERSION
    item: str | None = None
    model: str = "org.sdmx.infomodel"

    @classmethod
    def parse(cls, text: str) -> Urn:
        """Parses a URN.

        Raises:
            ValueError: it is no URN with agency, id and version.
        """
        found = _URN.fullmatch(text.strip())
        if not found:
            raise ValueError("not a URN of the form urn:sdmx:org.sdmx.infomodel.package.Class=AGENCY:ID(VERSION)")
        return cls(**found.groupdict())

    @classmethod
    def of(cls, kind: str, agency: str, identifier: str, version: str | None = None) -> Urn:
        """Returns the URN of a maintainable artefact of a kind of the model.

        >>> str(Urn.of("GeoGridCodelist", "EXAMPLE", "CL_GRID"))
        'urn:sdmx:org.sdmx.infomodel.codelist.Codelist=EXAMPLE:CL_GRID(1.0)'

        Raises:
            KeyError: the model has no such kind.
        """
        if kind in SINGLE_SCHEMES:
            version = DEFAULT_VERSION
        class_name = CLASSES.get(kind, kind)
        return cls(PACKAGES[kind], class_name, agency, identifier, version or DEFAULT_VERSION)

    def maintainable(self) -> Urn:
        """Returns the URN of the artefact that holds this item; itself where it names no item."""
        if self.item is None:
            return self
        holder = HOLDERS.get(self.class_name)
        if holder is None:
            return replace(self, item=None)
        return Urn.of(holder, self.agency, self.id, self.version)

    def __str__(self) -> str:
        item = f".{self.item}" if self.item is not None else ""
        return f"urn:sdmx:{self.model}.{self.package}.{self.class_name}={self.agency}:{self.id}({self.version}){item}"


def is_registration(urn: str | None) -> bool:
    """Whether a text is the URN of a data registration.

    >>> is_registration("urn:sdmx:org.sdmx.infomodel.registry.Registration=ECB:exr-1(1.0)")
    True
    """
    try:
        return Urn.parse(urn or "").class_name == REGISTRATION
    except ValueError:
        return False
