"""The kinds of maintainable artefacts: their classes and packages in URNs, and the names they have in each format.

Classes and packages are those of the SDMX Information Model (SDMX 2.1 and 3.0, section 2; URNs: section 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        kind: package
        for package, kinds in {
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
            "MetadataConstraint MetadataProvisionAgreement ProvisionAgreement",
            "structuremapping": "CategorySchemeMap ConceptSchemeMap OrganisationSchemeMap ReportingTaxonomyMap "
            "RepresentationMap StructureMap",
            "transformation": "CustomTypeScheme NamePersonalisationScheme RulesetScheme TransformationScheme "
            "UserDefinedOperatorScheme VtlMappingScheme",
        }.items()
        for kind in kinds.split()
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

_ELEMENTS = {
    "CodeList": "Codelist",
    "KeyFamily": "DataStructure",
    "MetadataStructureDefinition": "MetadataStructure",
}
_SPELLINGS = {kind.lower(): kind for kind in PACKAGES}
_ENDINGS = (("ies", "y"), ("es", ""), ("s", ""))

HOLDERS: Mapping[str, str] = MappingProxyType(
    {
        item: kind
        for kind, items in {
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
        }.items()
        for item in items.split()
    }
)
"""The kind of the artefact that holds items of a class; hierarchies and maps are items in SDMX 2.1 alone."""


def kind_of_element(name: str) -> str | None:
    """The kind of an XML element or of a member of Fusion-JSON; None where the model has none of that name.

    >>> kind_of_element("KeyFamily")
    'DataStructure'
    """
    kind = _ELEMENTS.get(name, name)
    return kind if kind in PACKAGES else None


def kind_of_container(name: str) -> str | None:
    """The kind of what an SDMX-JSON array holds, by the array's name.

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
