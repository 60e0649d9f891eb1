"""The sender's own code against a simulated Kafka, in as many orders of events as wanted.

Real runs (`tools.faults`) show some hundred orders in an hour; here a schedule takes milliseconds, so that many
thousands are tried, and each one comes again by its seed:

- `events`: virtual time, and processes that can be killed and stopped at each of their calls,
- `partitions`, `coordinator`, `brokers`: the brokers' side, `network`: requests that come late, twice or never,
- `producer`, `consumer`, `admin`: what confluent-kafka's clients do with them, put into their places by `clients`
  (`Any` there means that library's own classes),
- `plans`, `runs`, `verdict`: what happens in a schedule, who sends what, and the outcome,
- `scripts`: the same questions to these brokers and to real ones, with the same answers.
"""
