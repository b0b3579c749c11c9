"""`agentd schema`: the protocol for machines."""

import argparse
import json


def main(argv: list[str]) -> int:
    """Print the JSON Schema, or TypeScript, of the protocol."""
    parser = argparse.ArgumentParser(
        prog="agentd schema",
        description="Print JSON Schema (2020-12) of every request, result, notification and event of the "
        "protocol: what the request agentd/schema answers.",
    )
    parser.add_argument("--typescript", action="store_true", help="print TypeScript declarations instead")
    said = parser.parse_args(argv)

    from agentd.protocol.schema import json_schema

    schema = json_schema()
    if said.typescript:
        from agentd.protocol.typescript import typescript

        print(typescript(schema), end="")
    else:
        print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
