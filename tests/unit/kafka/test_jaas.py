"""What the login texts of Java clients become."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.kafka import ClientSettings
from contexture.kafka.jaas import login_of, login_options

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
TOKENS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"


def test_a_plain_login_is_user_and_password():
    assert login_options(f'{PLAIN} required username="anna" password="open sesame";', "") == {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "anna",
        "sasl.password": "open sesame",
    }


def test_a_scram_login_keeps_the_mechanism_that_is_said():
    text = f"{SCRAM} required username='anna' password='x';"
    assert login_options(text, "SCRAM-SHA-256") == {"sasl.username": "anna", "sasl.password": "x"}
    with pytest.raises(ValueError, match=r"sasl\.mechanism beside it to SCRAM-SHA-256 or SCRAM-SHA-512"):
        login_options(text, "")


def test_a_client_of_openid_connect_has_id_secret_scope_and_extensions():
    text = (
        f'{TOKENS} required clientId="me" clientSecret="hush" scope="kafka" extension_cluster="c1" extension_pool="p";'
    )
    assert login_options(text, "OAUTHBEARER") == {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "hush",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "cluster=c1,pool=p",
    }


def test_kerberos_on_several_lines_names_principal_and_keytab():
    text = f"""{KERBEROS} required
      useKeyTab=true   // from a file
      storeKey=true /* as
      always */
      keyTab="/etc/security/me.keytab"
      principal="me@EXAMPLE.COM";
    """
    assert login_options(text, "GSSAPI") == {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": "/etc/security/me.keytab",
        "sasl.kerberos.principal": "me@EXAMPLE.COM",
    }


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "write it as Java has it"),
        ("hush", "write it as Java has it"),
        (f"{PLAIN} hush;", "write it as Java has it"),
        (f'{PLAIN} required username="hush', "close the quotation mark"),
        (f"{PLAIN} required username hush;", 'write each of its options as name="value"'),
        (f"{PLAIN} required username=;", 'write each of its options as name="value"'),
        (f'{PLAIN} required; {PLAIN} required password="hush";', "give one login module"),
        (f'{PLAIN} required username="a" user_hash="hush";', "its options user_hash have no equivalent"),
        (f'{TOKENS} required unsecuredLoginStringClaim_sub="hush";', "unsecuredLoginStringClaim_sub"),
        ("com.example.OwnLoginModule required;", "its login module is none of"),
    ],
)
def test_other_texts_are_refused_without_being_quoted(text, advice):
    with pytest.raises(ValueError, match=advice) as caught:
        login_options(text, "PLAIN")
    assert "hush" not in str(caught.value).replace("user_hash", "")


@pytest.mark.slow
@given(st.text())
def test_any_password_survives_quoting(password):
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert login_of(f'{PLAIN} required username="anna" password="{quoted}";').options["password"] == password


def test_the_text_and_the_mechanism_must_agree():
    extra = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{PLAIN} required username="anna" password="hush";',
    }
    with pytest.raises(Exception, match="in two ways") as caught:
        ClientSettings.from_extra(extra)
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(ClientSettings.from_extra({**extra, "sasl.mechanism": "PLAIN"}))
