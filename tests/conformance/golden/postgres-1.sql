-- A store of version 1 in PostgreSQL, as pg_dump prints it: a project that was created with an Idempotency-Key and then
-- changed, three messages, a revision of an account, a chunk.
CREATE TABLE accounts (
    id bytea NOT NULL,
    email bytea NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE api_keys (
    number bigint NOT NULL,
    hash bytea NOT NULL,
    account bytea NOT NULL,
    created_at bigint NOT NULL
);
ALTER TABLE api_keys ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY;
CREATE TABLE records (
    "position" bigint NOT NULL,
    collection text NOT NULL,
    id bytea NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    status text NOT NULL,
    owner bytea NOT NULL,
    request_key bytea,
    fields bytea NOT NULL,
    belongs_to bytea,
    changed bigint
);
CREATE TABLE schema_version (
    only_row bigint NOT NULL,
    version bigint NOT NULL,
    oldest bigint NOT NULL
);
CREATE TABLE sign_in_codes (
    number bigint NOT NULL,
    email bytea NOT NULL,
    client bytea NOT NULL,
    hash bytea NOT NULL,
    expires bigint NOT NULL
);
ALTER TABLE sign_in_codes ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY;
CREATE TABLE site (
    id text NOT NULL,
    "position" bigint NOT NULL,
    changed bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE write_limits (
    bucket bytea NOT NULL,
    expiries bigint[] NOT NULL,
    allowance bigint NOT NULL,
    granted bigint NOT NULL,
    last_hour bigint NOT NULL
);
INSERT INTO accounts VALUES ('\x616363745f6530343739366666663335363939393534313638', '\x616e6e406578616d706c652e6f7267', 1795722733207794);
INSERT INTO api_keys OVERRIDING SYSTEM VALUE VALUES (1, '\x30363937393337333661356131353633316431366439393166373661353366633133373334323431323231653233313266303339333162356536393566303464', '\x616363745f6530343739366666663335363939393534313638', 1795722733207794);
INSERT INTO records VALUES (2, 'messages', '\x316d3863706d736e393179326b35687139663836', 1795722733225390, 1795722733225390, 'active', '\x', NULL, '\x7b22746872656164223a22316d3863706d736e31617833766573366a363739222c22626f6479223a2230227d', '\x316d3863706d736e31617833766573366a363739', 2);
INSERT INTO records VALUES (3, 'messages', '\x316d3863706d736e68726268386a683164616b67', 1795722733233666, 1795722733233666, 'active', '\x', NULL, '\x7b22746872656164223a22316d3863706d736e31617833766573366a363739222c22626f6479223a2231227d', '\x316d3863706d736e31617833766573366a363739', 3);
INSERT INTO records VALUES (4, 'messages', '\x316d3863706d736e6e316e6b307767316b716332', 1795722733237406, 1795722733237406, 'active', '\x', NULL, '\x7b22746872656164223a22316d3863706d736e31617833766573366a363739222c22626f6479223a2232227d', '\x316d3863706d736e31617833766573366a363739', 4);
INSERT INTO records VALUES (5, 'revisions', '\x316d3863706d736e7438777a7067776a39347a74', 1795722733242249, 1795722733242249, 'active', '\x616363745f6530343739366666663335363939393534313638', NULL, '\x7b2270726f6a656374223a22316d3863706d736e31617833766573366a363739222c226d657373616765223a226d227d', '\x316d3863706d736e31617833766573366a363739', 5);
INSERT INTO records VALUES (6, 'file_chunks', '\x316d3863706d736e78667268673462726b683161', 1795722733245270, 1795722733245270, 'active', '\x', NULL, '\x7b22636f6e74656e74223a2278227d', NULL, NULL);
INSERT INTO records VALUES (1, 'projects', '\x316d3863706d736e31617833766573366a363739', 1795722733217727, 1795722733251980, 'active', '\x', '\x39613034363963653264653537373731313261323437303163643161633030653232616161623863343530623839366633346165623265356230306232396438', '\x7b226e616d65223a226f6c64222c227469746c65223a226368616e676564227d', NULL, 6);
INSERT INTO schema_version VALUES (1, 1, 1);
INSERT INTO site VALUES ('eaa1e61167687d5e', 6, 6, 1795722733245270);
INSERT INTO write_limits VALUES ('\x6d657373616765730a3132372e302e302e31', '{1795726333225390,1795726333233666,1795726333237406}', 120, 1, 498812);
INSERT INTO write_limits VALUES ('\x7265766973696f6e730a3132372e302e302e31', '{1795726333242249}', 60, 1, 498812);
SELECT setval('api_keys_number_seq', 1, true);
SELECT setval('sign_in_codes_number_seq', 1, true);
ALTER TABLE ONLY accounts ADD CONSTRAINT accounts_email_key UNIQUE (email);
ALTER TABLE ONLY accounts ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY api_keys ADD CONSTRAINT api_keys_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY records ADD CONSTRAINT records_id_key UNIQUE (id);
ALTER TABLE ONLY records ADD CONSTRAINT records_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY schema_version ADD CONSTRAINT schema_version_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY sign_in_codes ADD CONSTRAINT sign_in_codes_pkey PRIMARY KEY (number);
ALTER TABLE ONLY write_limits ADD CONSTRAINT write_limits_pkey PRIMARY KEY (bucket);
CREATE INDEX api_keys_of_account ON api_keys USING btree (account, created_at, number);
CREATE UNIQUE INDEX records_by_change ON records USING btree (changed) WHERE (changed IS NOT NULL);
CREATE UNIQUE INDEX records_by_request_key ON records USING btree (request_key) WHERE (request_key IS NOT NULL);
CREATE INDEX records_of_collection ON records USING btree (collection, "position");
CREATE INDEX records_of_whole ON records USING btree (collection, belongs_to, "position") WHERE (belongs_to IS NOT NULL);
CREATE INDEX sign_in_codes_by_expiry ON sign_in_codes USING btree (expires);
CREATE INDEX sign_in_codes_of_email ON sign_in_codes USING btree (email, client, number);
CREATE INDEX write_limits_by_hour ON write_limits USING btree (last_hour);
ALTER TABLE ONLY api_keys ADD CONSTRAINT api_keys_account_fkey FOREIGN KEY (account) REFERENCES accounts(id);
