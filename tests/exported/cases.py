"""The cases of make.py: name -> function of the dtype that gives a module and its arguments.

Each stands for a kind of program that was refused or wrong once, or for a family of models.
"""
import torch
import torch.nn.functional as F
from torch import nn

CASES = {}


class Function(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def tensor(x, dtype):
    """A shape is a random tensor of the dtype; a function makes its own."""
    return torch.randn(*x).to(dtype) if isinstance(x, tuple) else x(dtype)


def case(name, make, *args, dtype=torch.float16):
    """make: a class or function without arguments that gives a module."""
    def built(t):
        return make(), tuple(tensor(a, t) for a in args)
    built.dtype = dtype
    assert name not in CASES, name
    CASES[name] = built


def function(name, fn, *args, **more):
    case(name, lambda: Function(fn), *args, **more)


def integers(most, *shape):
    return lambda dtype: torch.randint(0, most, shape)


def booleans(*shape):
    return lambda dtype: torch.rand(*shape) > 0.5


def in_float32(*shape):
    return lambda dtype: torch.randn(*shape)


def zero_rows(*shape):
    """Every second row is zero, as padding is."""
    return lambda dtype: torch.randn(*shape).to(dtype) * (torch.arange(shape[-2]) % 2)[:, None].to(dtype)


# -- convolutions and pools: windows in steps over odd sizes, groups, borders, gaps

case("conv_odd_steps", lambda: nn.Sequential(nn.Conv2d(3, 17, 7, stride=2, padding=3), nn.BatchNorm2d(17), nn.ReLU(), nn.MaxPool2d(3, 2, 1)), (1, 3, 23, 21))
case("conv_depthwise_odd", lambda: nn.Conv2d(16, 16, 3, groups=16, padding=1, stride=2), (1, 16, 11, 11))
case("conv_dilated", lambda: nn.Sequential(nn.Conv2d(16, 32, 3, dilation=2, padding=2), nn.ReLU(), nn.Conv2d(32, 16, 5, stride=3, padding=1)), (1, 16, 14, 14))
case("conv_groups", lambda: nn.Conv2d(24, 48, 3, groups=3, padding=1), (1, 24, 8, 8))
case("conv_reflect", lambda: nn.Conv2d(8, 16, 3, padding=1, padding_mode="reflect"), (1, 8, 9, 9))
case("conv_transposed", lambda: nn.ConvTranspose2d(8, 4, 3, stride=2, output_padding=1, padding=1), (1, 8, 7, 7))
case("conv_causal", lambda: nn.Sequential(nn.ConstantPad1d((3, 0), 0.0), nn.Conv1d(32, 32, 4, groups=32)), (1, 32, 17))
case("pixel_shuffle", lambda: nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.PixelShuffle(2)), (1, 8, 6, 6))

# -- norms

function("norm_of_batch", lambda x: F.batch_norm(x, None, None, training=True), (8, 32, 3))
case("norm_one_group", lambda: nn.Sequential(nn.GroupNorm(1, 64), nn.Conv2d(64, 64, 1)), (1, 64, 8, 8))
case("norm_groups_odd", lambda: nn.GroupNorm(3, 48), (2, 48, 7, 5))
case("norm_zero_rows", lambda: nn.LayerNorm(64, eps=1e-12), zero_rows(2, 8, 64))
case("norm_odd", lambda: nn.Sequential(nn.LayerNorm(97), nn.Linear(97, 33)), (3, 97))
function("norm_in_float32", lambda x, w, b: F.layer_norm(x.float(), (64,), w.float(), b.float(), 1e-6).to(x.dtype) + x, (2, 17, 64), (64,), (64,))
function("norm_of_float32", lambda x: F.layer_norm(x, (72,)), (6, 72), dtype=torch.float32)
function("norm_by_hand", lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5), (4, 33, 128))

# -- rotary embeddings


def turned(x):
    h = x.shape[-1] // 2
    return torch.cat((-x[..., h:], x[..., :h]), -1)


def in_full(x, cos, sin):
    """As ESM, ModernBERT and Cohere have it: float32 between casts, also where the halves are exchanged."""
    x32 = x.float()
    return (x32 * cos + turned(x32) * sin).to(x.dtype)


for width in 32, 64, 80:
    function(f"rope_float32_{width}", in_full, (1, 2, 16, width), in_float32(16, width), in_float32(16, width))
function("rope_one_row", in_full, (1, 2, 1, 32), in_float32(1, 32), in_float32(1, 32))
function("rope_part", lambda x, c, s: torch.cat((x[..., :32] * c + turned(x[..., :32]) * s, x[..., 32:]), -1), (1, 2, 16, 80), (16, 32), (16, 32))
function("rope_pairs", lambda x, c, s: torch.stack((x[..., ::2] * c - x[..., 1::2] * s, x[..., 1::2] * c + x[..., ::2] * s), -1).flatten(-2),
         (1, 2, 16, 64), (16, 32), (16, 32))

# -- attention

attend = F.scaled_dot_product_attention
function("attention_80", lambda q, k, v: attend(q, k, v, is_causal=True), *3 * [(1, 2, 33, 80)])
function("attention_values_32", attend, (1, 2, 16, 64), (1, 2, 24, 64), (1, 2, 24, 32))
function("attention_mask", lambda q, k, v, m: attend(q, k, v, attn_mask=m | torch.eye(32, dtype=torch.bool)), *3 * [(1, 2, 32, 64)], booleans(32, 32))
function("attention_sink", lambda q, k, v, s: torch.cat((q @ k.transpose(-1, -2) * 0.1, s.expand(1, 2, 16, 1)), -1).softmax(-1)[..., :-1] @ v,
         *3 * [(1, 2, 16, 64)], (1, 2, 1, 1))
function("attention_soft_cap", lambda q, k, v: ((q @ k.transpose(-1, -2) / 240).tanh() * 30).softmax(-1) @ v, *3 * [(2, 32, 64)])
case("attention_layer", lambda: nn.TransformerDecoderLayer(64, 2, 96, batch_first=True), (1, 9, 64), (1, 14, 64))


class Cache(nn.Module):
    """Buffers that are named like the inputs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 2, 33, 32))
        self.register_buffer("v", torch.zeros(1, 2, 33, 32))

    def forward(self, q, k, v, at):
        self.k.index_copy_(2, at, k)
        self.v.index_copy_(2, at, v)
        return attend(q, self.k, self.v, attn_mask=torch.arange(33)[None] <= at[:, None])


case("cache", Cache, *3 * [(1, 2, 4, 32)], lambda dtype: torch.arange(10, 14))


class Rolling(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(2, 16, 64))
        self.register_buffer("n", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.rows = torch.cat((self.rows[:, 1:], x), 1)
        self.n += 1
        return self.rows.mean(1)


case("rolling_cache", Rolling, (2, 1, 64))

# -- views, writes and indices

function("views_inside_sticks", lambda x: (x.view(6, -1) + 1, x.reshape(-1)[3:100] * 2, x.permute(2, 0, 1).reshape(40, 6) * 3), (2, 3, 40))
function("views_in_steps", lambda x: (x[:, -3:], x[..., ::3] + 1, x[1:-1, 2], x[:, None, ::2, 5:70]), (4, 9, 80))
function("views_strided", lambda x: torch.as_strided(x, (4, 6), (3, 1), 2) + 1, (8, 8))
function("views_heads", lambda x: x.view(2, 10, 3, 4, 24).permute(2, 0, 3, 1, 4).unbind(0), (2, 10, 288))
function("cat_of_five", lambda *x: torch.cat(x, -1).relu(), (3, 10), (3, 64), (3, 1), (3, 65), (3, 128))
function("stack_and_roll", lambda x, y: (torch.stack((x, y), -1), x.roll((-2, 3), (0, 1)), x.flip(-1), torch.hstack((x, y))), (7, 33), (7, 33))


def written(x, y):
    z = x.clone()
    z[1:3] = y[:2]
    z[:, ::2] *= 2
    z[0].add_(1)
    z.t()[5].mul_(3)
    z[:, 10:20] = z[:, 0:10].clone()
    return z, z.sum()


function("written_views", written, (6, 40), (6, 40))
function("written_rows", lambda x, i: (x.index_fill(0, i[:3], 2.0), x.index_copy(0, torch.tensor([1, 3, 5]), x.new_ones(3, 60))), (10, 60), integers(10, 8))
function("rows_from_the_end", lambda x: (x[-1] * 2, x[[0, -1, 2]] + 1), (6, 7, 64))
function("added_rows", lambda x, i, s: x.index_put((i,), s, accumulate=True), (10, 60), integers(10, 30), (30, 60))

# -- weights in few bits


class Packed(nn.Module):
    """Two weights of 4 bits in a byte, a scale per row."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(0, 255, (96, 32), dtype=torch.uint8))
        self.s = nn.Parameter(torch.rand(96, 1))

    def forward(self, x):
        low, high = (self.w & 15).to(x.dtype) - 8, (self.w >> 4).to(x.dtype) - 8
        return x @ (torch.stack((low, high), -1).flatten(1) * self.s * 0.05).t()


case("weights_of_4_bits", Packed, (5, 64))

# -- models of transformers, one layer each


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


class States(nn.Module):
    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *args):
        return self.model(**dict(zip(self.names, args))).last_hidden_state


def model(name, family, kind, wrap, args, attention="sdpa", **config):
    def built(dtype):
        import transformers
        made = getattr(transformers, family + kind)._from_config(
            getattr(transformers, family + ("TextConfig" if family == "Gemma3" else "Config"))(**config), dtype=dtype, attn_implementation=attention)
        wrapped = wrap(made)
        wrapped.keeps_dtypes = True
        return wrapped, tuple(tensor(a, dtype) for a in args)
    CASES[name] = built


SMALL = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, vocab_size=128,
             max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
TOKENS = [integers(128, 1, 24)]
for name, family, more in (("mistral", "Mistral", dict(sliding_window=8, head_dim=32)), ("qwen3", "Qwen3", dict(head_dim=64)),
                           ("gemma3", "Gemma3", dict(head_dim=32, query_pre_attn_scalar=32, sliding_window=16)),
                           ("olmo", "Olmo", {}), ("cohere", "Cohere", {}), ("stablelm", "StableLm", dict(partial_rotary_factor=0.25)),
                           ("phi3", "Phi3", dict(original_max_position_embeddings=64))):
    model(name, family, "ForCausalLM", Logits, TOKENS, **{**SMALL, **more})


def mask(dtype):
    m = torch.ones(2, 24, dtype=torch.int64)
    m[1, 14:] = 0
    return m


BERT = dict(hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=96, vocab_size=128, max_position_embeddings=64, pad_token_id=0)
PAIR = [lambda dtype: torch.randint(3, 128, (2, 24)), mask]
both = lambda m: States(m, "input_ids", "attention_mask")  # noqa: E731
model("esm", "Esm", "Model", both, PAIR, "eager", **BERT, mask_token_id=3, position_embedding_type="rotary")
model("modernbert", "ModernBert", "Model", both, PAIR, **BERT, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=16)
model("deberta", "DebertaV2", "Model", both, PAIR, "eager", **BERT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16,
      max_relative_positions=32, norm_rel_ebd="layer_norm", share_att_key=True)
model("t5", "T5", "EncoderModel", both, PAIR, "eager", d_model=64, d_kv=32, d_ff=96, num_layers=1, num_heads=2, vocab_size=128)
pixels = lambda m: States(m, "pixel_values")  # noqa: E731
model("poolformer", "PoolFormer", "Model", pixels, [(1, 3, 32, 32)], "eager", num_encoder_blocks=2, depths=[1, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3],
      strides=[4, 2], padding=[2, 1])
model("swin", "Swin", "Model", pixels, [(1, 3, 32, 32)], "eager", image_size=32, patch_size=4, embed_dim=32, depths=[1, 1], num_heads=[1, 2], window_size=4)
model("wav2vec2", "Wav2Vec2", "Model", lambda m: States(m, "input_values"), [(1, 400)], hidden_size=64, num_hidden_layers=1, num_attention_heads=2,
      intermediate_size=96, conv_dim=[32, 32], conv_stride=[5, 2], conv_kernel=[10, 3], num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
      num_feat_extract_layers=2, apply_spec_augment=False)
