-- The same of version 6 in SQLite, as .dump prints it.
BEGIN TRANSACTION;
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
  );
INSERT INTO "accounts" VALUES('acct_b4663ba957e7da1628d3','ann@example.org',1795722725776840);
CREATE TABLE api_keys (
    hash BLOB PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL
  );
INSERT INTO "api_keys" VALUES(X'30643737383633656361626465653738383833323362623130633037386665393837643061623664333764366134623463326531363734623432383134346565','acct_b4663ba957e7da1628d3',1795722725776840);
CREATE TABLE records (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    owner TEXT NOT NULL,
    request_key BLOB,
    fields TEXT NOT NULL,
    belongs_to TEXT,
    changed INTEGER
  );
INSERT INTO "records" VALUES(1,'projects','1m8cpmjdrm6j3jjqrvtb',1795722725816912,1795722725884271,'active','',X'39613034363963653264653537373731313261323437303163643161633030653232616161623863343530623839366633346165623265356230306232396438','{"name":"old","title":"changed"}',NULL,6);
INSERT INTO "records" VALUES(2,'messages','1m8cpmje5yrtcyprzrmt',1795722725829290,1795722725829290,'active','',NULL,'{"thread":"1m8cpmjdrm6j3jjqrvtb","body":"0"}','1m8cpmjdrm6j3jjqrvtb',2);
INSERT INTO "records" VALUES(3,'messages','1m8cpmjez0bz2w3nfg8k',1795722725855174,1795722725855174,'active','',NULL,'{"thread":"1m8cpmjdrm6j3jjqrvtb","body":"1"}','1m8cpmjdrm6j3jjqrvtb',3);
INSERT INTO "records" VALUES(4,'messages','1m8cpmjfa12kdqb4ah3h',1795722725866508,1795722725866508,'active','',NULL,'{"thread":"1m8cpmjdrm6j3jjqrvtb","body":"2"}','1m8cpmjdrm6j3jjqrvtb',4);
INSERT INTO "records" VALUES(5,'revisions','1m8cpmjfe0ehqqnp6bhq',1795722725870627,1795722725870627,'active','acct_b4663ba957e7da1628d3',NULL,'{"project":"1m8cpmjdrm6j3jjqrvtb","message":"m"}','1m8cpmjdrm6j3jjqrvtb',5);
INSERT INTO "records" VALUES(6,'file_chunks','1m8cpmjfgxrxpd2sj3qw',1795722725872976,1795722725872976,'active','',NULL,'{"content":"x"}',NULL,NULL);
CREATE TABLE sign_in_codes (
    email TEXT NOT NULL,
    client TEXT NOT NULL,
    hash TEXT NOT NULL,
    expires INTEGER NOT NULL
  );
CREATE TABLE site (id TEXT NOT NULL);
INSERT INTO "site" VALUES('5e6487359e1db03e');
CREATE TABLE writes (bucket TEXT NOT NULL, expires INTEGER NOT NULL);
INSERT INTO "writes" VALUES('messages
127.0.0.1',1795726325829290);
INSERT INTO "writes" VALUES('messages
127.0.0.1',1795726325855174);
INSERT INTO "writes" VALUES('messages
127.0.0.1',1795726325866508);
INSERT INTO "writes" VALUES('revisions
127.0.0.1',1795726325870627);
CREATE INDEX records_of_collection ON records (collection, position);
CREATE INDEX records_of_whole ON records (collection, belongs_to, position)
    WHERE belongs_to IS NOT NULL;
CREATE UNIQUE INDEX records_by_change ON records (changed) WHERE changed IS NOT NULL;
CREATE UNIQUE INDEX records_by_request_key ON records (request_key) WHERE request_key IS NOT NULL;
CREATE INDEX writes_of_bucket ON writes (bucket, expires);
CREATE INDEX writes_by_expiry ON writes (expires);
CREATE INDEX api_keys_of_account ON api_keys (account, created_at);
CREATE INDEX sign_in_codes_of_email ON sign_in_codes (email, client);
CREATE INDEX sign_in_codes_by_expiry ON sign_in_codes (expires);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('records',6);
COMMIT;
PRAGMA user_version = 6;
