//! The real binary, seen from outside. One test binary for all subjects, so that it links once.

mod balance;
mod bodies;
mod broken_answers;
mod command_line;
mod conditions;
mod configuration;
mod connections;
mod curl;
mod descriptor_tables;
mod dialogues;
mod documents;
mod drain;
mod endure;
mod gone_clients;
mod nginx;
mod normal_forms;
mod refusals;
mod reload;
mod servers;
mod slow_peers;
mod stickiness;
mod telemetry;
mod tls;
mod tls_clients;
mod tls_fields;
mod urgent;
