//! The whole way of a connection, from accept to the last byte of the answer.
