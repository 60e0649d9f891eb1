"""NGSI-LD: its entities in the model that everything else works on."""
