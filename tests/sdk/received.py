"""Finds the images in a request that a provider received, in the provider's format."""

import base64
import struct
import zlib


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png():
    pixels = b"".join(b"\0" + bytes([255, row * 60, 0]) * 4 for row in range(4))
    size = struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", size) + _chunk(b"IDAT", zlib.compress(pixels)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


# Four by four pixels. Its base64 contains characters that differ in the URL-safe alphabet.
PNG = _png()
PNG_BASE64 = base64.b64encode(PNG).decode()
assert "+" in PNG_BASE64 and "/" in PNG_BASE64


def _objects(value):
    """Every object in `value`, at any depth, in order."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _objects(inner)


def _data_url(url):
    head, data = url.split(",", 1)
    assert head.startswith("data:") and head.endswith(";base64"), head
    return head.removeprefix("data:").removesuffix(";base64"), data


def _image(kind, found):
    """(media type, base64) when `found` is an image in the format of a provider of type `kind`."""
    if kind == "native" and found.get("type") == "image":
        assert found["source"]["type"] == "base64"
        return found["source"]["media_type"], found["source"]["data"]
    if kind == "responses" and found.get("type") == "input_image":
        return _data_url(found["image_url"])
    if kind == "chat-compatible" and found.get("type") == "image_url":
        return _data_url(found["image_url"]["url"])
    if kind == "alt-cli" and "inlineData" in found:
        data = found["inlineData"]  # The service takes both spellings, and what is not converted stays as it was.
        return data.get("mimeType") or data["mime_type"], data["data"]
    return None


def images(kind, body):
    """All images in a request's body, each as (media type, bytes)."""
    found = [image for image in (_image(kind, one) for one in _objects(body)) if image]
    if kind == "alt-cli":  # The one service that takes the URL-safe alphabet too.
        found = [(media, data.replace("-", "+").replace("_", "/")) for media, data in found]
    return [(media, base64.b64decode(data, validate=True)) for media, data in found]
