-- The schemas, the extension that the exclusion constraints need, and the enum types: environments, outcomes, states,
-- reasons, kinds of events, policies of ownership, scopes of keys and kinds of products.
CREATE EXTENSION IF NOT EXISTS btree_gist;

-- The program makes the schema ledger and the table ledger.migration before it applies the first migration.
COMMENT ON SCHEMA ledger IS 'What Perennial remembers. Private: other programs read the schema perennial instead.';
COMMENT ON TABLE ledger.migration IS
    'The migrations that this database has, in order; digest is the SHA-256 of the text';

CREATE SCHEMA perennial;
COMMENT ON SCHEMA perennial IS 'The stable surface for other people''s SQL.';

CREATE TYPE ledger.environment AS ENUM ('Production', 'Sandbox');
COMMENT ON TYPE ledger.environment IS
    'Apple''s environment. The order matters: production sorts first and wins between equals';

CREATE TYPE ledger.outcome AS ENUM ('verified', 'rejected', 'indeterminate', 'none');
COMMENT ON TYPE ledger.outcome IS
    'verified: Apple vouches for the receipt; rejected: Apple refuses to; indeterminate: the call brought no '
    'verdict; none: Apple was not asked, the outage allowance ended. Only verified changes facts';

CREATE TYPE ledger.state AS ENUM ('active', 'grace_period', 'billing_retry', 'awaiting_renewal', 'expired', 'revoked');
COMMENT ON TYPE ledger.state IS 'The state of a subscription; active, grace_period and awaiting_renewal give access';

CREATE TYPE ledger.reason AS ENUM (
    'voluntary', 'billing_error', 'price_increase', 'product_unavailable', 'other', 'unknown',
    'refund', 'family', 'renewal', 'replacement');
COMMENT ON TYPE ledger.reason IS
    'Why a subscription is in its state: the first six belong to expired, refund and family to revoked, renewal and '
    'replacement to awaiting_renewal';

CREATE TYPE ledger.event_kind AS ENUM (
    'subscription.started', 'trial.started', 'trial.converted', 'subscription.renewed', 'subscription.recovered',
    'subscription.reactivated', 'subscription.expired', 'trial.expired', 'auto_renew.disabled', 'auto_renew.enabled',
    'billing.retry_entered', 'billing.grace_entered', 'billing.grace_expired', 'product.changed',
    'product.change_scheduled', 'product.change_withdrawn', 'price_increase.pending', 'price_increase.accepted',
    'refund.granted', 'refund.reversed', 'family.revoked', 'subscription.extended', 'subscription.shortened',
    'purchase.made', 'purchase.refunded', 'ownership.assigned', 'ownership.transferred');
COMMENT ON TYPE ledger.event_kind IS 'What an event reports; docs/lifecycle.md says when each occurs';

CREATE TYPE ledger.ownership_policy AS ENUM ('transfer', 'keep', 'transfer_if_lapsed');
COMMENT ON TYPE ledger.ownership_policy IS
    'What an upload by another customer does. transfer: the newest uploader takes over; keep: the owner stays; '
    'transfer_if_lapsed: the newest uploader takes over only what gives no access any more';

CREATE TYPE ledger.scope AS ENUM ('read', 'write', 'admin');
COMMENT ON TYPE ledger.scope IS 'What an API key may do; each scope includes the ones before it';

CREATE TYPE ledger.product_kind AS ENUM ('auto_renewable', 'non_renewing', 'consumable', 'non_consumable');
COMMENT ON TYPE ledger.product_kind IS
    'What a product of the catalog is, in the words of App Store Connect. non_renewing: a subscription that ends after '
    'the catalog''s period, because Apple knows no end of it';
