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
CREATE TABLE connection_settings (
	connection VARCHAR(200) NOT NULL,
	name VARCHAR(200) NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (connection, name)
);
INSERT INTO "connection_settings" VALUES('kafka_default','bootstrap.servers','broker:9092');
CREATE TABLE events (
	place BIGINT NOT NULL,
	id VARCHAR(32) NOT NULL,
	type VARCHAR(200) NOT NULL,
	publication VARCHAR(200) NOT NULL,
	at_ms BIGINT NOT NULL,
	data TEXT NOT NULL,
	PRIMARY KEY (place),
	UNIQUE (id)
);
INSERT INTO "events" VALUES(1772366400000000,'f1303532da9d7663b7935ee8e1e98348','contexture.operations.person.acted','vehicles',1772366400000,'{"who":"anna","action":"abandon","subject":"outbox0","reason":"broken","outcome":"abandoned","run_id":null}');
CREATE TABLE interventions (
	id VARCHAR(200) NOT NULL,
	publication VARCHAR(200) NOT NULL,
	at_ms BIGINT NOT NULL,
	who TEXT NOT NULL,
	action VARCHAR(200) NOT NULL,
	subject TEXT NOT NULL,
	reason TEXT NOT NULL,
	outcome TEXT NOT NULL,
	run_id TEXT,
	PRIMARY KEY (id)
);
INSERT INTO "interventions" VALUES('i1','vehicles',1772366400000,'anna','abandon','outbox0','broken','abandoned',NULL);
CREATE TABLE producer_properties (
	publication VARCHAR(200) NOT NULL,
	line_number INTEGER NOT NULL,
	property TEXT NOT NULL,
	PRIMARY KEY (publication, line_number)
);
INSERT INTO "producer_properties" VALUES('vehicles',1,'batches.batch_size=1');
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
CREATE TABLE contexture_alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT contexture_alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "contexture_alembic_version" VALUES('0006');
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
CREATE TABLE verifications (
	publication VARCHAR(200) NOT NULL,
	verified_ms BIGINT NOT NULL,
	equal BOOLEAN NOT NULL,
	told TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	held BIGINT NOT NULL,
	records BIGINT NOT NULL,
	missing BIGINT NOT NULL,
	extra BIGINT NOT NULL,
	different BIGINT NOT NULL,
	misordered BIGINT NOT NULL,
	seconds FLOAT NOT NULL,
	report TEXT NOT NULL,
	PRIMARY KEY (publication, verified_ms)
);
INSERT INTO "verifications" VALUES('vehicles',1772366400000,TRUE,'all equal',7,10,10,0,0,0,0,1.5,'vehicles/verification/1/index.html');
CREATE INDEX runs_by_start ON runs (publication, started_ms);
CREATE INDEX transactions_by_status ON transactions (status, publication);
CREATE INDEX transactions_by_time ON transactions (publication, updated_ms);
CREATE INDEX interventions_by_time ON interventions (publication, at_ms);
CREATE INDEX events_by_time ON events (publication, at_ms);
CREATE VIEW kafa_producer_config AS SELECT publication AS id, topics AS topic, format FROM producers;
CREATE VIEW kafa_producer_config_properties AS SELECT publication AS id, line_number, property FROM producer_properties;
CREATE VIEW kafka_connection_settings AS SELECT name AS conn_key, value AS conn_value, connection FROM connection_settings;
CREATE VIEW kafa_producer_tx AS SELECT COALESCE(CAST(source_transaction AS VARCHAR(20)), outbox || '/' || shard || '/' || number) AS tx_id, publication AS producer_id, status AS tx_status, updated_ms AS tx_last_updated, bytes AS tx_size, records AS tx_messages FROM transactions;
CREATE VIEW kafka_producer_tx AS SELECT COALESCE(CAST(source_transaction AS VARCHAR(20)), outbox || '/' || shard || '/' || number) AS tx_id, publication AS producer_id, status AS tx_status, updated_ms AS tx_last_updated, bytes AS tx_size, records AS tx_messages FROM transactions;
