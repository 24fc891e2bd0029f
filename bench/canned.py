#!/usr/bin/env python3
"""A server of Flight SQL that gives every query the same row and does nothing else: what a driver's calls alone take.

    bench/canned.py PORT
"""

import sys

import pyarrow
import pyarrow.flight as flight

ROWS = pyarrow.table({"n": pyarrow.array([1], pyarrow.int64())})
PREPARED = b"type.googleapis.com/arrow.flight.protocol.sql.ActionCreatePreparedStatementResult"


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, value):
    """A field of a message of Protocol Buffers that has bytes."""
    return varint(number << 3 | 2) + varint(len(value)) + value


class Canned(flight.FlightServerBase):
    def get_flight_info(self, context, descriptor):
        # Drivers ask what the server can do when they connect: nothing.
        ticket = b"none" if b"SqlInfo" in descriptor.command else b"row"
        return flight.FlightInfo(ROWS.schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)

    def do_get(self, context, ticket):
        rows = ROWS if ticket.ticket == b"row" else pyarrow.RecordBatchReader.from_batches(ROWS.schema, [])
        return flight.RecordBatchStream(rows)

    def do_action(self, context, action):
        if action.type != "CreatePreparedStatement":
            return []
        columns, parameters = (schema.serialize().to_pybytes() for schema in (ROWS.schema, pyarrow.schema([])))
        told = field(1, b"handle") + field(2, columns) + field(3, parameters)
        return [field(1, PREPARED) + field(2, told)]


if __name__ == "__main__":
    Canned(f"grpc://127.0.0.1:{sys.argv[1]}").serve()
