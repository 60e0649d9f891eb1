"""Operations: what people do and see. Modules are imported by name."""
