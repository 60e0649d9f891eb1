CREATE TABLE attempts (
	publication VARCHAR(200) NOT NULL,
	outbox VARCHAR(200) NOT NULL,
	shard INTEGER NOT NULL,
	failed INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	allowed INTEGER,
	state VARCHAR(200) NOT NULL,
	intent VARCHAR(200) NOT NULL,
	message TEXT NOT NULL,
	failed_ms BIGINT NOT NULL,
	next_ms BIGINT,
	PRIMARY KEY (publication, outbox, shard, failed)
);
INSERT INTO "attempts" VALUES('vehicles','outbox1',0,1,1,11,'waiting','retry','no broker. Next: wait',1772366400000,1772366405000);
CREATE TABLE producers (
	publication VARCHAR(200) NOT NULL,
	topics TEXT NOT NULL,
	format VARCHAR(200) NOT NULL,
	connection VARCHAR(200) NOT NULL,
	updated_ms BIGINT NOT NULL,
	PRIMARY KEY (publication)
);
INSERT INTO "producers" VALUES('vehicles','cygnus dm-by-entity','ngsiv2','kafka_default',1772366400000);
CREATE TABLE runs (
	publication VARCHAR(200) NOT NULL,
	run VARCHAR(200) NOT NULL,
	run_id TEXT NOT NULL,
	mode VARCHAR(200),
	sequence BIGINT,
	outbox VARCHAR(200),
	state VARCHAR(200) NOT NULL,
	failed_task VARCHAR(200),
	message TEXT,
	started_ms BIGINT NOT NULL,
	ended_ms BIGINT,
	PRIMARY KEY (publication, run)
);
INSERT INTO "runs" VALUES('vehicles','run1','scheduled__1','full',7,'outbox1','succeeded',NULL,NULL,1772366400000,1772366400000);
CREATE TABLE schema_version (
	version INTEGER NOT NULL,
	applied_ms BIGINT NOT NULL,
	PRIMARY KEY (version)
);
INSERT INTO "schema_version" VALUES(1,1772366400000);
INSERT INTO "schema_version" VALUES(2,1772366400000);
CREATE TABLE transactions (
	publication VARCHAR(200) NOT NULL,
	outbox VARCHAR(200) NOT NULL,
	shard INTEGER NOT NULL,
	number BIGINT NOT NULL,
	status INTEGER NOT NULL,
	records BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	position BIGINT NOT NULL,
	source_transaction BIGINT,
	message TEXT,
	updated_ms BIGINT NOT NULL,
	source_deletions BOOLEAN,
	PRIMARY KEY (publication, outbox, shard, number)
);
INSERT INTO "transactions" VALUES('vehicles','outbox1',0,0,1,10,1000,10,NULL,NULL,1772366400000,FALSE);
INSERT INTO "transactions" VALUES('vehicles','outbox1',0,1,3,0,0,10,4711,'no broker',1772366400000,TRUE);
CREATE INDEX runs_by_start ON runs (publication, started_ms);
CREATE INDEX transactions_by_status ON transactions (status, publication);
CREATE INDEX transactions_by_time ON transactions (publication, updated_ms);
CREATE VIEW kafa_producer_config AS SELECT publication AS id, topics AS topic, format FROM producers;
CREATE VIEW kafa_producer_tx AS SELECT COALESCE(CAST(source_transaction AS VARCHAR(20)), outbox || '/' || shard || '/' || number) AS tx_id, publication AS producer_id, status AS tx_status, updated_ms AS tx_last_updated, bytes AS tx_size, records AS tx_messages FROM transactions;
CREATE VIEW kafka_producer_tx AS SELECT COALESCE(CAST(source_transaction AS VARCHAR(20)), outbox || '/' || shard || '/' || number) AS tx_id, publication AS producer_id, status AS tx_status, updated_ms AS tx_last_updated, bytes AS tx_size, records AS tx_messages FROM transactions;
